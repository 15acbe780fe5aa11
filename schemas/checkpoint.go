package schemas

// Checkpoint is an engine's signed statement about consecutive entries of the log. The checkpoints form a
// chain, because each of them names the previous one. docs/evidence.md describes the bytes that Hash and
// Signature cover.
type Checkpoint struct {
	First uint64 `json:"first"` // the sequence number of the first entry
	Last  uint64 `json:"last"`  // the sequence number of the last entry; that of the checkpoint itself is greater
	// Lines has one SHA-256 for each entry from First to Last, one after another, in base64. It is the
	// SHA-256 of the entry's line in an exported log.
	Lines     string `json:"lines"`
	Previous  string `json:"previous,omitempty"`  // the Hash of the previous checkpoint; empty in the first checkpoint
	Hash      string `json:"hash"`                // SHA-256 in hex
	Key       string `json:"key,omitempty"`       // the engine's public nkey; empty if the engine has no key
	Signature string `json:"signature,omitempty"` // the Ed25519 signature of the text of Hash, in base64
}
