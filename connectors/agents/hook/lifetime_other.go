//go:build !unix

package hook

import "os"

// awaitReaderGone always returns false: this system cannot detect it, and the
// hook's deadline applies.
func awaitReaderGone(*os.File) bool { return false }
