import { useQuery } from "@tanstack/react-query";
import type { Login } from "@tapedeck/client";
import { api } from "@/client";

/** Who is logged in; undefined while that is not known. A server without access control has nobody. */
export function useViewer(): Login | undefined {
  return useQuery({
    queryKey: ["viewer"],
    queryFn: ({ signal }) => api.login({ signal }),
    staleTime: Number.POSITIVE_INFINITY,
    retry: 2,
  }).data;
}

/** Logs out, and goes to the page that logs in. */
export async function logOut(): Promise<void> {
  await api.logout();
  location.assign("/login");
}
