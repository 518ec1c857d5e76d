-- +goose Up
-- This migration changes nothing: a data folder has one server. In PostgreSQL, the migration of
-- this number adds the address of the owner, and both stores have the same numbers.
SELECT 1;
