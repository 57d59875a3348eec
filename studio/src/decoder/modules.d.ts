/** Package for JavaScript, or `absent.ts` in a build without it: see `vite.config.ts`. Its types are in `decoder.ts`. */
declare module "@tambour/core";
