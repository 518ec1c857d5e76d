import { type Api, createApi } from "./api.ts";
import { type ClientOptions, Http } from "./http.ts";

/**
 * The end points alone, as `createClient(o).api` has them. A page that follows no session
 * loads a smaller script with it.
 */
export function createEndPoints(o: ClientOptions): Api {
  return createApi(new Http(o));
}
