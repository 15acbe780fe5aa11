package schemas

// Place says whether a target is inside the project.
type Place string

// The places of a target. An empty Place means that nod cannot tell.
const (
	PlaceProject Place = "project"
	PlaceOutside Place = "outside"
)

// OutsideProject is the reason for the risk of a call that names a place outside its project.
const OutsideProject = "outside the project"

// ActsOn stands in Does for a place on which a call takes effect, such as the server to which a command
// connects. Unlike all other values of Does, it is no reason for the risk.
const ActsOn = "acts on"

// Target is the file, or the other thing with a name, that one reason for a call's risk is about.
type Target struct {
	Does string `json:"does"`           // the reason, which is one of the record's Reasons; or ActsOn
	Name string `json:"name,omitempty"` // the file as the call names it, or another name such as that of a host
	// Path is the full path of the file, with all symbolic links that nod knows resolved. It is empty if
	// Name is no file, or if nod cannot tell the path.
	Path  string `json:"path,omitempty"`
	Place Place  `json:"place,omitempty"`
	Later Later  `json:"-"`
}
