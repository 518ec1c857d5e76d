// Package secrets plants secrets in every place of the configuration that has one, and looks
// for them in everything that the real program prints, answers and stores.
package secrets
