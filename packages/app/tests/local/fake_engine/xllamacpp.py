"""A stand-in for the engine, found by the child process through PYTHONPATH.

What it does is steered by the text in the model file: `refuse` fails to load with llama.cpp's own
words, `crash` ends the process while loading, `hang` never ends loading (and writes
its process id to the file named by HANGS_IN), `noisy` prints more than a pipe holds.
"""

import http.server
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class CommonParams(SimpleNamespace):
    def __init__(self) -> None:
        threads = {"cpuparams": SimpleNamespace(), "cpuparams_batch": SimpleNamespace()}
        super().__init__(model=SimpleNamespace(), sampling=SimpleNamespace(), **threads)


class Server:
    def __init__(self, params: Any) -> None:
        content = Path(params.model.path).read_bytes()
        if b"crash" in content:
            os._exit(3)
        if b"refuse" in content:
            os.write(2, b"0.00.003 E llama_model_load: error loading model: bad magic\n")
            raise RuntimeError("Failed to init server, please check the input params.")
        if b"hang" in content:
            if "HANGS_IN" in os.environ:
                Path(os.environ["HANGS_IN"]).write_text(str(os.getpid()), encoding="utf-8")
            signal.pause()
        if b"noisy" in content:
            for _ in range(200):
                os.write(1, b"I loading tensor\n" * 100)
                os.write(2, b"I loading tensor\n" * 100)
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(params))
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{self.http.server_address[1]}"


def handler(params: Any) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers["Authorization"] != f"Bearer {params.api_keys[0]}":
                self.reply(401, {"error": {"message": "Invalid API Key"}})
            elif len(sent["messages"][0]["content"]) > params.n_ctx:
                self.reply(400, {"error": {"message": "the request exceeds the context"}})
            else:
                self.reply(200, {"timings": TIMINGS, "sent": sent, **facts(params)})

        def do_GET(self) -> None:
            if self.path == "/slots" and b"odd" not in Path(params.model.path).read_bytes():
                self.reply(200, SLOTS)
            else:
                self.reply(404, {"error": {"message": "File Not Found"}})

        def reply(self, status: int, body: Any) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            return

    return Handler


SLOTS = [
    {
        "is_processing": True,
        "n_prompt_tokens": 2000,
        "n_prompt_tokens_processed": 700,
        "n_prompt_tokens_cache": 100,
        "next_token": [{"n_decoded": 3}],
    }
]
TIMINGS = {"prompt_n": 400, "prompt_per_second": 80.0, "predicted_per_second": 17.0}


def facts(params: Any) -> dict[str, Any]:
    """What the process was given, to be checked by the test."""
    return {
        "argv": sys.orig_argv,
        "environ": dict(os.environ),
        "context": params.n_ctx,
        "slots": params.n_parallel,
        "hosts": params.hostnames,
        "no_extra_bufts": params.no_extra_bufts,
        "template": getattr(params, "chat_template", ""),
    }
