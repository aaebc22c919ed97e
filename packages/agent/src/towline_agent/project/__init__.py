"""What a project brings along for its agent: instructions, commands, files to mention."""
