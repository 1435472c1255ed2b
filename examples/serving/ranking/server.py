"""The server: `python -m ranking.server PORT GOLDEN…` answers POST /CASE with the outputs for some rows, as JSON."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jax
import numpy as np

from ranking.check import load, problem


def start(port, goldens):
    """Return a server of these models. Exit if one of them fails the load check: no request reaches it."""
    for golden in goldens:
        if text := problem(golden):
            sys.exit(text)
    models = {f"/{golden.parent.name}": jax.jit(load(golden).call) for golden in goldens}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            outputs = models[self.path](np.asarray(rows, np.float32))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(outputs.tolist()).encode())

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    start(int(sys.argv[1]), [Path(word) for word in sys.argv[2:]]).serve_forever()
