package schemas

import "time"

// RestoredKey is the key of a Restored in the bucket permission_settings.
const RestoredKey = "restored"

// Restored is a note that the stores were restored from a backup. Decisions that were made
// between the backup and the restore are not known, and may have revoked or used up a grant.
// Grants from before the restore therefore count as ended.
type Restored struct {
	At     time.Time `json:"at"`      // the time of the restore; not before any time in the backup
	MadeAt time.Time `json:"made_at"` // the time of the backup
}
