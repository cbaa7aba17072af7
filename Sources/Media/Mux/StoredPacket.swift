/// Where a packet's data lies in the file, and its times in units of the track; so that it can be written once more.
struct StoredPacket {
    var position: Int64
    var size: Int
    var presentation: Int64
    var decoding: Int64
    var duration: Int64
    var flags: Int32
}
