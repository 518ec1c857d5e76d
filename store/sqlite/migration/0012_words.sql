-- +goose Up
-- As in PostgreSQL, where the words of texts without spaces are others now. Here the search
-- index is a file of its own, with a version of its own.
SELECT 1;
