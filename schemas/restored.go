package schemas

import "time"

// RestoredKey is the key under which the bucket permission_settings has a Restored.
const RestoredKey = "restored"

// Restored notes that the stores were restored from a backup. nod does not know what happened between
// the backup and the restore, when a grant may have been revoked or used up. All grants from before
// the restore therefore count as ended.
type Restored struct {
	At     time.Time `json:"at"`      // the time of the restore, which is not before any time in the backup
	MadeAt time.Time `json:"made_at"` // the time of the backup
}
