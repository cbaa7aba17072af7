internal import Fetch

/// The places of a list's entries that are in progress. The list has as many as its concurrency, and so has each of its origins.
///
/// An entry that waits for its origin keeps only its place there: an origin that refuses requests gets no more of them, and does
/// not delay the entries of others.
struct EntryPlaces {
    /// What an entry holds.
    struct Place: Hashable {
        let origin: String
        fileprivate var isAtOrigin = false
        fileprivate var isInList = false

        init(of entry: PrewarmEntry?) {
            // Files and objects of mounts count as one origin.
            origin = entry.flatMap { try? SourceURL($0.url) }?.origin ?? ""
        }
    }

    private var inList = 0
    private var atOrigins: [String: Int] = [:]

    var isEmpty: Bool { inList == 0 && atOrigins.isEmpty }

    /// Whether no place in the list is free.
    func areTaken(of concurrency: Int) -> Bool { inList >= concurrency }

    /// Takes the places that an entry needs to be in progress. Returns false if it has to wait.
    mutating func take(_ place: inout Place, of concurrency: Int) -> Bool {
        let isListFree = place.isInList || !areTaken(of: concurrency)
        let isOriginFree = place.isAtOrigin || atOrigins[place.origin, default: 0] < concurrency
        guard isListFree, isOriginFree else { return false }
        if !place.isInList { inList += 1 }
        if !place.isAtOrigin { atOrigins[place.origin, default: 0] += 1 }
        (place.isInList, place.isAtOrigin) = (true, true)
        return true
    }

    /// Leaves the place in the list of an entry that waits for its origin.
    mutating func leaveToOtherOrigins(_ place: inout Place) {
        if place.isInList { inList -= 1 }
        place.isInList = false
    }

    /// Leaves all places of an entry that has ended.
    mutating func leave(_ place: Place) {
        if place.isInList { inList -= 1 }
        guard place.isAtOrigin, let count = atOrigins[place.origin] else { return }
        atOrigins[place.origin] = count > 1 ? count - 1 : nil
    }
}
