// Package queue orders work that waits: who is next when something that it may
// be served by becomes free, and who has to go when there is no more room. A
// Queue takes time as an argument, does no I/O and starts no goroutine; its
// owner serialises the calls.
//
// Three rules make the order, from the outside in:
//
//   - Classes. A more important Priority goes first. Of each sixteen grants of
//     a key that a less important class is there for, it is offered one all the
//     same: strict order would let it starve for as long as there is more
//     important work.
//   - Flows, inside a class: deficit round robin by cost. Each round gives a flow
//     Quantum units, what it used beyond them it pays back in the next rounds,
//     and of those that may still use some the one with most is served. (To let
//     it use them all before the next one would make fifty small requests wait
//     for fifty others.) Two flows that always have work waiting for the same
//     keys are so served within the largest cost of each other, twice. A flow
//     that comes back from idleness has saved nothing up: it stands no better
//     than the one served least of those who wait, and what it owed it still
//     owes, less what the rounds meanwhile would have paid, until nobody of its
//     class waits any more. A new flow begins with a round's worth.
//   - Items, inside a flow: first come, first served. Under standing load the
//     newest goes first: see standing.go.
//
// A flow may take all the room that nobody else needs. Where there is none left
// the newcomer takes the place of an item that matters less, see room.go, so
// that one flow cannot keep another one out. This does what a bound on each flow
// would do, and does not refuse a lone flow what is free.
//
// A signal says that a key has become free. Next gives it to one item, which is
// told and tries; Done, Pass and Remove say how that went. A signal that did not
// help is handed on, to each item at most once, and one that came while nobody
// else could be told waits for those who are trying. Pass says with a Denial whom
// else the reason concerns; these are not told of the signal. With many in line
// and room for few of them that is a try for each kin, not for each item.
//
// The first in order that is denied for its size alone is passed by smaller ones
// for a moment, then the key is held for it: those of its class behind it, and
// less important ones, are not told until it fits, leaves or is denied for another
// reason. A less important class has its one grant of sixteen all the same.
package queue
