internal import CLinux
internal import Glibc
internal import SystemIO

/// A channel for ``WorkerMessage``s over a SOCK_SEQPACKET socket, which its owner closes.
struct MessageChannel {
    let socket: Int32

    /// Sends a message and duplicates of the descriptors.
    func send(_ message: WorkerMessage, descriptors: [Int32] = []) throws(SystemError) {
        let status = message.words.withUnsafeBytes { bytes in
            clinux_send_message(socket, bytes.baseAddress, bytes.count, descriptors, Int32(descriptors.count))
        }
        guard status == 0 else { throw SystemError.last("sendmsg") }
    }

    /// A message and its descriptors, which the caller must close.
    struct Received {
        /// Nil if the bytes are not a message.
        var message: WorkerMessage?
        var descriptors: [Int32]
    }

    /// Waits for the next message; returns nil if the peer has closed the socket or sent an empty message.
    ///
    /// - Throws: EMSGSIZE if the message is too long, has too many descriptors, or has descriptors but no bytes.
    func receive() throws(SystemError) -> Received? {
        var words = [Int64](repeating: 0, count: WorkerMessage.wordCount + 1)
        var descriptors = [Int32](repeating: -1, count: 4)
        var count: Int32 = 0
        let length = words.withUnsafeMutableBytes { bytes in
            clinux_receive_message(socket, bytes.baseAddress, bytes.count, &descriptors, &count)
        }
        guard length >= 0 else { throw SystemError.last("recvmsg") }
        if length == 0 { return nil }
        let message = words.withUnsafeBytes { WorkerMessage(UnsafeRawBufferPointer(rebasing: $0[..<Int(length)])) }
        return Received(message: message, descriptors: Array(descriptors.prefix(Int(count))))
    }
}
