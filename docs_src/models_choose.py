import asyncio

from towline_agent import choose_model, discover, list_models


async def main() -> None:
    for found in discover():
        print(f"{found.provider}: {found.why}")
    listing = await list_models("gemini")
    choice = choose_model("gemini", listing.models)
    print(f"{choice.model}: {choice.why}")


asyncio.run(main())
