# For tests of webhooks: `load receiver` after `load lib`.

# Start a server that answers each POST with the next of these statuses (the last for all later
# ones) and records what it receives: `serve 503 200`; sets $PORT.
serve()
{
    cat >"$ROOT/server.py" <<'PY'
import http.server, sys
statuses = [int(s) for s in sys.argv[1:]]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        print("post", status, self.path, self.headers["Content-Type"],
              self.headers["X-Berth-Delivery"], body.decode(), flush=True)
        self.send_response(status)
        self.end_headers()
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print("port", server.server_port, flush=True)
server.serve_forever()
PY
    background server python3 "$ROOT/server.py" "$@"
    PORT=$(wait_for_output server '^port' | cut -d' ' -f2)
}
