"""Streams Chat Completions chunks as fast as they are taken; a process of its own for `loop.py`."""

import argparse
import asyncio

from aiohttp import web

HEAD = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":['
CHUNK = HEAD + b'{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n'
END = (
    HEAD
    + b'{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    + HEAD
    + b'],"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}\n\n'
    b"data: [DONE]\n\n"
)


async def serve(chunks: int, burst: int) -> None:
    async def complete(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(chunks // burst):
            await response.write(CHUNK * burst)
            await asyncio.sleep(0)
        await response.write(END)
        await response.write_eof()
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--burst", type=int, default=4)
    options = parser.parse_args()
    asyncio.run(serve(options.chunks, options.burst))
