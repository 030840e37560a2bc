// Messages between hosts, through the node of this machine. See docs/howto/applications.md.
//
// Made from crates/capi/src/lib.rs: `RAMPMETER_HEADER=write cargo test -p rampmeter-capi --test header`.

#ifndef RAMPMETER_H
#define RAMPMETER_H

#include <stddef.h>
#include <stdint.h>

// A message that was submitted is over.
#define RM_FINISHED 1

// A message has arrived.
#define RM_RECEIVED 2

// As much is under way as may be: take events, then try again.
#define RM_ERROR_FULL -1

// The message is longer than the send arena.
#define RM_ERROR_TOO_LONG -2

// The node has died or has sent the program away, and everything has been reported.
#define RM_ERROR_NODE_GONE -3

// There is no node, or it refuses.
#define RM_ERROR_ATTACH -4

// A null pointer where there must be none.
#define RM_ERROR_ARGUMENT -5

// The receiver does not answer.
#define RM_UNREACHABLE 1

// The receiver was started again after bytes of the message had left.
#define RM_PEER_RESTARTED 2

// No program takes messages of this service or size there.
#define RM_REFUSED 3

// No node has this number.
#define RM_UNKNOWN_PEER 4

// The message is empty or longer than nodes take.
#define RM_BAD_SIZE 5

// This machine's node is being stopped.
#define RM_STOPPING 6

// This machine's node has died, or has sent the program away.
#define RM_NODE_GONE 7

// The transport, which promises a bound, does not take the message now. Nothing of it was sent.
#define RM_REJECTED 8

// Other bytes have arrived than were sent, and were dropped.
#define RM_CORRUPT 9

// The receiver could not put the message together: it has another `network.mtu` or transport.
#define RM_MISMATCH 10

// A message that has arrived.
typedef struct rm_message rm_message;

// A program's access to the node of its machine, for one service. Threads may share it.
typedef struct rm_port rm_port;

// What a port asks its node for.
typedef struct {
  // Messages that may be under way, 1 to 65536.
  uint32_t depth;
  // Bytes for messages that are sent.
  uint64_t send;
  // Bytes for messages that arrive or are held.
  uint64_t receive;
} rm_config;

// What a message may say beside where it goes.
typedef struct {
  // Nanoseconds in which it is needed, 0 if nobody says.
  uint64_t deadline_ns;
  // Whom it belongs to, 0 if nobody says.
  uint32_t tenant;
} rm_options;

// The answer to a message that was submitted.
typedef struct {
  // Its number, which the event that ends it has too.
  uint64_t ticket;
  // Nanoseconds within which that event is there, 0 if the transport promises no bound: what
  // `rm_bound` says of the message.
  uint64_t bound_ns;
} rm_submitted;

// What a port hears.
typedef struct {
  // `RM_FINISHED` or `RM_RECEIVED`.
  uint32_t kind;
  // Finished: 0 if the receiver has it, or why not, such as `RM_REFUSED`.
  uint32_t failure;
  // Finished: the message's ticket.
  uint64_t ticket;
  // Received: the sending node.
  uint32_t source;
  // Received: the message, until it is released.
  const uint8_t *bytes;
  // Received: its size.
  size_t size;
  // Received: what to release.
  rm_message *message;
  // Received: the user of the sending program, or -1 where it is not of this node.
  int64_t uid;
} rm_event;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Attaches to the node whose socket is at `path`, to take the messages of `service`. `config` may
// be null: 1024 messages, 64 MiB each way. Returns 0 and sets `port`, or `RM_ERROR_ATTACH`.
//
// # Safety
// `path` is a string; `config` is null or valid; `port` may be written.
int rm_attach(const char *path, uint16_t service, const rm_config *config, rm_port **port);

// Submits a copy of `size` bytes to `service` at node `dst`. Its outcome is told once, by an event
// with the ticket that is put into `submitted`, within the bound that is put there.
// `submitted` may be null, as may `options`. Returns 0, or `RM_ERROR_FULL`, `RM_ERROR_TOO_LONG` or
// `RM_ERROR_NODE_GONE`.
//
// # Safety
// `port` is attached; `bytes` has `size` bytes; `options` is null or valid; `submitted` is null or
// may be written.
int rm_submit(const rm_port *port,
              uint32_t dst,
              uint16_t service,
              const void *bytes,
              size_t size,
              const rm_options *options,
              rm_submitted *submitted);

// Nanoseconds within which the outcome of a message of `size` bytes is known, from when the node
// takes it from the submission queue; a node that sleeps is woken to do so at once. 0 if the
// transport promises no bound for messages of `tenant`. The node reports the outcome by then on
// its clock. That it and the program must be on a processor to do their parts comes on top.
//
// # Safety
// `port` is attached, or null, which has no bound.
uint64_t rm_bound(const rm_port *port, size_t size, uint32_t tenant);

// Takes the next event, waiting for it for `timeout_ms`: 0 not to wait, negative for as long as
// need be. Returns 1 and fills `event`, 0 if there is none, or `RM_ERROR_NODE_GONE`. A message
// that is received takes room until it is released.
//
// # Safety
// `port` is attached; `event` may be written.
int rm_next(const rm_port *port, int64_t timeout_ms, rm_event *event);

// From now on threads that wait stay awake for at most `most_ns` before they sleep, and offer the
// processor to others meanwhile; how long they do follows from how soon events come. 100 000 unless
// something else has been set, 0 for not at all.
//
// # Safety
// `port` is attached.
int rm_set_busy_poll(const rm_port *port, uint64_t most_ns);

// Releases a message that was received; null is none. It may outlive its port.
//
// # Safety
// `message` is from an event and has not been released.
void rm_release(rm_message *message);

// A descriptor that becomes readable when there is an event, after `rm_arm` has answered 0. It is
// the port's: do not read or close it.
//
// # Safety
// `port` is attached.
int rm_fd(const rm_port *port);

// Asks for the descriptor to become readable at the next event. Returns 1 if there may be one
// already: take all with `rm_next`, then arm again. Otherwise 0.
//
// # Safety
// `port` is attached.
int rm_arm(const rm_port *port);

// Gives the service up; null is none. Messages under way go on; their outcomes are not reported.
//
// # Safety
// `port` is attached, and nobody uses it any more.
void rm_close(rm_port *port);

// What was wrong with the last call of this thread that returned an error. The text stays until
// the next such call.
const char *rm_error(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RAMPMETER_H */
