package policy

// ExposedAmong works like ThisDisk.Exposed, but has another limit of names.
var ExposedAmong = exposedAmong
