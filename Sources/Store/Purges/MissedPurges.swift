/// Why stored renditions are doubted: what a node knows about the purges that others made while it was away.
package enum MissedPurges: Sendable, Equatable {
    /// Purges were missed and are not known any more. The origin has to confirm an alias before it is used.
    case certain
    /// Purges may have been missed: the stream of purges is not the one that was followed, or it is the first one. The origin is
    /// asked first, and the alias is used if the origin does not answer.
    case possible
}
