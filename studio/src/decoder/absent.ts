/** Stands for the package in a build without its WebAssembly module: loading it fails, and the server reads instead. */
throw new Error("this build has no decoder");

export {};
