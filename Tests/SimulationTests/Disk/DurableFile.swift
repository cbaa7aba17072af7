import TestSupport

/// A file's durable contents, and changes after them that may be lost.
struct DurableFile: Sendable {
    enum Change: Sendable {
        case write([UInt8], at: Int)
        case truncate(Int)
    }

    private(set) var contents: [UInt8]
    var pending: [Change] = []

    init(contents: [UInt8]) {
        self.contents = contents
    }

    /// Records that a sync has succeeded.
    mutating func makeDurable() {
        for change in pending { Self.apply(change, to: &contents) }
        pending = []
    }

    /// Records that a sync has failed: the kernel forgets that the changes are not on the disk, so no later sync writes them.
    mutating func loseChanges() {
        pending = []
    }

    /// The contents after a power loss: each change that was not synced is there, in part, or missing.
    func contents(survival: Double, using generator: inout SeededNumbers) -> [UInt8] {
        var result = contents
        for change in pending where Double.random(in: 0..<1, using: &generator) < survival {
            if case .write(let bytes, let offset) = change, Int.random(in: 0...7, using: &generator) == 0 {
                let count = Int.random(in: 0...bytes.count, using: &generator)
                Self.apply(.write(Array(bytes.prefix(count)), at: offset), to: &result)
            } else {
                Self.apply(change, to: &result)
            }
        }
        return result
    }

    static func apply(_ change: Change, to contents: inout [UInt8]) {
        switch change {
        case .write(let bytes, let offset):
            let end = offset + bytes.count
            if contents.count < end { contents += [UInt8](repeating: 0, count: end - contents.count) }
            contents.replaceSubrange(offset..<end, with: bytes)
        case .truncate(let length):
            if length < contents.count {
                contents.removeLast(contents.count - length)
            } else {
                contents += [UInt8](repeating: 0, count: length - contents.count)
            }
        }
    }
}
