// Runs before each test file. Testing Library waits one second by default, and a busy
// machine can take longer to draw. Only a failing test waits so long.
if (typeof document !== "undefined") {
  const { configure } = await import("@testing-library/react");
  configure({ asyncUtilTimeout: 60_000 });
}
