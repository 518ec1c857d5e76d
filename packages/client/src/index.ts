// @tapedeck/client: the HTTP API of a Tapedeck server for browsers, Node and edge runtimes.
export { Announcer } from "./announcer.ts";
export type {
  AnswerOptions,
  Api,
  AppendOptions,
  AskedPermission,
  AtOptions,
  ContextQuery,
  DiffQuery,
  EventsPage,
  EventsQuery,
  InboxQuery,
  Login,
  Producer,
  SearchQuery,
  SessionSort,
  SessionsQuery,
  SnapshotQuery,
  UsageQuery,
} from "./api.ts";
export { type Client, createClient } from "./client.ts";
export { createEndPoints } from "./end-points.ts";
export { type Environment, surroundings } from "./environment.ts";
export { type ErrorDetails, type ErrorKind, TapedeckError } from "./errors.ts";
export type { Channel, Jump, MarkerKind, SessionEntry, Tree } from "./fold/types.ts";
export type { Connection, Follower, FollowQuery, Listener } from "./follow.ts";
export type { CallOptions, ClientOptions } from "./http.ts";
export * from "./people.ts";
export { type Place, type StreamKind, visited, visitPause } from "./places.ts";
export type { EventProducer, ProducerOptions } from "./producer.ts";
export type { FollowOptions, PlayerSource, RewindTo, Session } from "./session.ts";
export { hasOpenRun } from "./status.ts";
export type { UploadOptions } from "./upload.ts";
export type * from "./wire.ts";
