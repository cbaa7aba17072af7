internal import Glibc
internal import Synchronization
internal import SystemIO

/// What a ``CurlLoop`` does with the messages of other threads and with transfers that have ended. Used on the loop's thread only.
package protocol CurlLoopDriver: AnyObject, SendableMetatype {
    associatedtype Failure: CurlError
    associatedtype Message: Sendable

    /// Acts on a message that another thread has posted.
    func handle(_ message: Message, on multi: borrowing MultiHandle<Failure>)

    /// Advances the transfers without waiting, and ends those that have finished.
    ///
    /// - Throws: An error of libcurl that concerns all transfers.
    func advance(on multi: borrowing MultiHandle<Failure>) throws(Failure)

    /// The longest time until the next call of ``advance(on:)``, in milliseconds.
    var waitLimit: Int32 { get }

    /// Ends all transfers with an error.
    func endAll(_ error: Failure, on multi: borrowing MultiHandle<Failure>)
}

/// The thread that owns the transfers of a client, and the mailbox through which other threads reach it.
///
/// `@unchecked` because of `multi`: other threads only call its `wake()`, which libcurl documents as safe from any thread. The
/// loop's own thread makes all other calls. The handle is freed with the last reference, after the thread has ended.
package final class CurlLoop<Driver: CurlLoopDriver>: @unchecked Sendable {
    private struct Mailbox {
        var messages: [Driver.Message] = []
        var isClosed = false
    }

    private let multi: MultiHandle<Driver.Failure>
    private let mailbox = Mutex(Mailbox())
    private let thread = Mutex<SystemThread?>(nil)

    /// Starts the thread. The owner has to call ``stop()``.
    ///
    /// - Parameters:
    ///   - name: The name of the thread, at most 15 bytes.
    ///   - idleConnections: The number of idle connections to keep.
    ///   - makeDriver: Called once, on the thread.
    /// - Throws: ``CurlError/exhausted(cause:)`` if the process has no memory or no more threads.
    package init(
        name: String, idleConnections: Int, makeDriver: @escaping @Sendable () -> Driver
    ) throws(Driver.Failure) {
        guard CurlLibrary.prepare() else { throw .exhausted(cause: "curl_global_init") }
        multi = try MultiHandle(idleConnections: idleConnections)
        // The thread blocks all signals, among them SIGPIPE from writes to a closed TLS connection.
        guard let started = SystemThread.start(name: name, { self.run(makeDriver()) }) else {
            throw .exhausted(cause: "no more threads")
        }
        thread.withLock { $0 = started }
    }

    /// Hands a message to the driver. Any thread.
    ///
    /// - Returns: False after ``stop()``; the driver does not get the message then.
    @discardableResult
    package func post(_ message: Driver.Message) -> Bool {
        let isOpen = mailbox.withLock { mailbox in
            if !mailbox.isClosed { mailbox.messages.append(message) }
            return !mailbox.isClosed
        }
        if isOpen { multi.wake() }
        return isOpen
    }

    /// Ends all transfers with ``CurlError/closed`` and waits for the thread to end. A second call does nothing.
    package func stop() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        mailbox.withLock { $0.isClosed = true }
        multi.wake()
        thread.join()
    }

    /// The pauses after errors of libcurl that concern all transfers. The thread would spin without them if an error lasts.
    private static var pauses: Backoff { Backoff(first: .milliseconds(2), longest: .milliseconds(200)) }

    private func run(_ driver: Driver) {
        var failures = 0
        while true {
            let (messages, isClosed) = mailbox.withLock { mailbox in
                defer { mailbox.messages.removeAll() }
                return (mailbox.messages, mailbox.isClosed)
            }
            for message in messages { driver.handle(message, on: multi) }
            if isClosed { break }
            do throws(Driver.Failure) {
                try driver.advance(on: multi)
                try multi.wait(milliseconds: driver.waitLimit)
                failures = 0
            } catch {
                // libcurl fails here only when it is out of memory: end the transfers in progress and continue with new ones.
                driver.endAll(error, on: multi)
                failures += 1
                usleep(UInt32(Self.pauses.pause(after: failures) / .microseconds(1)))
            }
        }
        driver.endAll(.closed, on: multi)
    }
}
