import { useEffect, useState } from "react";

/** Whether only the conversation is shown. The style sheet hides the rest. */
export function useZen() {
  const [zen, set] = useState(false);
  useEffect(() => {
    if (zen) document.documentElement.dataset.zen = "";
    return () => {
      delete document.documentElement.dataset.zen;
    };
  }, [zen]);
  return [zen, set] as const;
}
