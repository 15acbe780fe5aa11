package pathname

// Remotes are the places with which the repository of a directory exchanges commits.
type Remotes struct {
	Default      string            // the remote to which git pushes if the command names none; "" if unknown
	DefaultFetch string            // the remote from which git fetches if the command names none; "" if unknown
	Push, Fetch  map[string]string // the host and the path of each remote, for pushing to it and fetching from it
}

// RemotesAt returns the remotes of the repository of each directory in which the call may run. It returns nil
// if the directories, or the remotes of one of their repositories, are unknown.
func (loc *Location) RemotesAt() (all []Remotes) {
	if loc.Lost {
		return nil
	}
	for _, dir := range loc.Dirs {
		if loc.Looked != nil {
			loc.Looked.Remotes = append(loc.Looked.Remotes, dir)
		}
		r, known := loc.Remotes[dir]
		if !known && loc.Looked == nil {
			return nil
		}
		all = append(all, r)
	}
	return all
}
