declare module "#engine" {
  const engine: import("./engine.js").Engine;
  export default engine;
}

declare module "#prompt-engine" {
  const engine: import("./engine.js").PromptEngine;
  export default engine;
}
