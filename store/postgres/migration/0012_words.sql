-- +goose Up
-- The words of texts without spaces are others now: everything is indexed again.
DELETE FROM docs;
DELETE FROM indexed;
