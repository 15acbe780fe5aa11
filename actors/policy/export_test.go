package policy

// ExposedAmong works like ThisDisk.Exposed, but the test sets the largest number of names.
var ExposedAmong = exposedAmong
