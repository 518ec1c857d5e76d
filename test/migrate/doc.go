// Package migrate has the tests of copying all sessions between a data folder and
// PostgreSQL. It has no other code.
package migrate
