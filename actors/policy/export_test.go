package policy

// ExposedAmong is ThisDisk.Exposed with another limit of names.
var ExposedAmong = exposedAmong
