//go:build !unix

package ownfile

// NoFollow is nothing here: only administrators make symbolic links.
const NoFollow = 0
