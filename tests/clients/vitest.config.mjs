export default { test: { include: ["durable_streams.suite.mjs"], cache: false, testTimeout: 20_000 } };
