/// A moment in the order of purges: how many there had been.
///
/// Whoever begins work that will be published notes it first; a purge of the work's source after it means the work is not
/// stored. Holds within one run of the server.
package struct Epoch: Sendable, Hashable, Comparable {
    let number: Int64

    package static func < (left: Epoch, right: Epoch) -> Bool {
        left.number < right.number
    }
}
