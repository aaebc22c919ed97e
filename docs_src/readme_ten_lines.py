import asyncio

from towline.cli.attach import ensure_server
from towline.paths import find_paths
from towline_client import Client


async def main() -> None:
    server, _ = await ensure_server(find_paths().run_file)  # finds it, or starts one
    async with Client(server.url, server.token) as client:
        session = await client.open()
        print(await session.ask("What time is it?"))


asyncio.run(main())
