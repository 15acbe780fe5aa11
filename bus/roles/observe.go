package roles

import (
	"slices"

	"github.com/nodbus/nod/schemas"
)

// ObserverName stands for the connector's name in an observer's queries. No connector may have this name.
const ObserverName = schemas.ConnectorObserver

// WatchSubject is the beginning of the subjects in EDGE on which engines receive an observer's
// request to follow the bucket of records. The rest of such a subject is a consumer's name and
// filter. A request to UnwatchSubject ends the watch.
//
// The request is JetStream's own request for a consumer, and its body names the subject to which the
// server delivers. It goes to an engine and not to the server, because with a subject of STORE in the
// body an observer could make the server write into the stores.
const (
	WatchSubject   = "_NOD.watch."
	UnwatchSubject = "_NOD.unwatch."
)

// OwnServer is the subject on which a server tells its client about itself, with its time, and about the
// client's rights.
const OwnServer = "$SYS.REQ.USER.INFO"

// RecordsBucket is the stream of the bucket of records, which observers may read.
const RecordsBucket = "KV_pending_permissions"

// ObserverInbox is the prefix of the subjects to which a watch of records may deliver.
var ObserverInbox = ID{Role: Observer}.InboxPrefix() + "."

// observedStreams are the streams whose state an observer may read. The stream of the bucket
// permission_settings is not among them, because the bucket's keys contain hashes of codes.
var observedStreams = []string{
	RecordsBucket, "KV_permission_sessions", "KV_client_presence", "KV_shown_prompts", "permission_prompts", "permission_log",
}

// ObservedStreams returns the names of the streams whose state an observer may read.
func ObservedStreams() []string { return slices.Clone(observedStreams) }

// observed is a request to JetStream that an observer may send, and the subject to which the account
// OBSERVE maps it. The first * stands for the same token in both subjects, and so does each further
// *.
type observed struct{ request, mapped string }

// observedRequests lists the observer's requests to JetStream that reach STORE. All of them only read.
func observedRequests() []observed {
	requests := []observed{
		{"$JS.API.INFO", "_NOD.account_info"},
		{"$JS.API.STREAM.NAMES", "_NOD.stream_names"},
		{"$JS.API.STREAM.LIST", "_NOD.stream_list"},
		{"$JS.API.CONSUMER.NAMES.*", "_NOD.consumer_names.*"},
		{"$JS.API.CONSUMER.LIST.*", "_NOD.consumer_list.*"},
		{"$JS.API.CONSUMER.INFO.*.*", "_NOD.consumer_info.*.*"},
		{"$JS.API.STREAM.MSG.GET." + RecordsBucket, "_NOD.message_get." + RecordsBucket},
		{"$JS.API.STREAM.MSG.GET.permission_log", "_NOD.message_get.permission_log"},
		{"$JS.API.DIRECT.GET." + RecordsBucket + ".$KV.pending_permissions.*.*", "_NOD.direct_get.*.*"},
	}
	for _, stream := range observedStreams {
		requests = append(requests, observed{"$JS.API.STREAM.INFO." + stream, "_NOD.stream_info." + stream})
	}
	return requests
}

// watchMappings map an observer's requests about consumers of the records to subjects on which
// engines listen. The subject of a request for a consumer ends in the consumer's filter, which the
// request's body repeats.
var watchMappings = []observed{
	{"$JS.API.CONSUMER.CREATE." + RecordsBucket + ".>", WatchSubject + ">"},
	{"$JS.API.CONSUMER.DELETE." + RecordsBucket + ".*", UnwatchSubject + "*"},
}

// discoveryVerbs are the requests to NATS micro services. The subject of each can end in the name of
// a service, or in the name and the id of an instance.
var discoveryVerbs = []string{"$SRV.PING", "$SRV.INFO", "$SRV.STATS"}

func discoverySubjects() (subjects []string) {
	for _, verb := range discoveryVerbs {
		subjects = append(subjects, verb, verb+".*", verb+".*.*")
	}
	return subjects
}

func observerQueries() []string { return verbs(observerVerbs, ObserverName) }

// observer returns the rights of an observer: to look at streams, consumers, records, services and
// messages, to query the engines, and to change nothing. The imports of its account allow nothing else
// (see shares).
func observer() Permissions {
	p := Permissions{Subscribe: []string{"nod.v1.>"}}
	for _, r := range observedRequests() {
		p.Publish = append(p.Publish, r.mapped)
	}
	p.Publish = append(p.Publish, WatchSubject+">", UnwatchSubject+"*", OwnServer)
	p.Publish = append(append(p.Publish, discoverySubjects()...), observerQueries()...)
	return p
}
