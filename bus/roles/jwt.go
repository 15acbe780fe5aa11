package roles

import (
	"time"

	"github.com/nats-io/jwt/v2"
)

// JWT returns p as a user's JWT contains it. Like writeSubjects, it denies everything in place of an
// empty allow list, because to the server a missing list means "everything".
func (p Permissions) JWT() jwt.Permissions {
	if p.All {
		return jwt.Permissions{}
	}
	permissions := jwt.Permissions{Pub: permission(p.Publish, p.DenyPublish), Sub: permission(p.Subscribe, nil)}
	if p.Responses { // what "allow_responses: true" means in a server's configuration
		permissions.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: 2 * time.Minute}
	}
	return permissions
}

func permission(allow, deny []string) jwt.Permission {
	if len(allow) == 0 {
		deny = []string{">"}
	}
	return jwt.Permission{Allow: allow, Deny: deny}
}
