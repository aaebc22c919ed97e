"""Google's Gemini API and Vertex AI: `generateContent` and `streamGenerateContent`."""
