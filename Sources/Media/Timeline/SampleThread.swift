internal import Synchronization
internal import SystemIO

/// Runs a ``SampleSource`` on a thread, which decodes and composes the next sample while the consumer encodes the current one.
///
/// The thread converts a sample as soon as the consumer has taken the previous one. Only one other thread may use this object.
/// Call ``stop()`` before the source's bytes become invalid.
final class SampleThread<Decoder: AnimationDecoder & ~Copyable>: @unchecked Sendable {
    // Owned by the thread until it signals `ready`, then by the consumer until that signals `taken`.
    private let source: SampleSource<Decoder>
    private let own: OwnedPlanes
    private var outcome: Result<TimedPicture?, TranscodeError> = .success(nil)

    private let ready = Semaphore()
    private let taken = Semaphore(value: 1)
    private let isStopped = Atomic(false)
    private var thread: SystemThread?

    /// Starts the thread. Returns nil, with the source unused, if the system has no thread or no memory.
    init?(_ source: SampleSource<Decoder>) {
        guard let own = try? OwnedPlanes(width: source.width, height: source.height, source.chroma, hasAlpha: source.hasAlpha)
        else { return nil }
        self.source = source
        self.own = own
        thread = SystemThread.start(name: "gifreel-decode") { self.run() }
        if thread == nil { return nil }
    }

    /// Waits for the next sample and writes its picture into the planes, which hold the previous sample. Returns nil at the
    /// end. Must not be called again after that, or after an error.
    func next(into planes: FramePlanes) throws(TranscodeError) -> TimedPicture? {
        ready.wait()
        guard let sample = try outcome.get() else { return nil }
        planes.copy(sample.area, from: own.planes, width: source.width, height: source.height)
        taken.signal()
        return sample
    }

    /// Stops the thread after its current frame, and waits for its end.
    func stop() {
        isStopped.store(true, ordering: .relaxed)
        taken.signal()
        thread?.join()
        thread = nil
    }

    private func run() {
        var isLast = false
        while !isLast, !isStopped.load(ordering: .relaxed) {
            var isOurs = false
            func claim() {
                if !isOurs { taken.wait() }
                isOurs = true
            }
            let result: Result<TimedPicture?, TranscodeError>
            do throws(TranscodeError) {
                let sample = try source.next {
                    claim()
                    return own.planes
                }
                isLast = sample == nil
                result = .success(sample)
            } catch {
                isLast = true
                result = .failure(error)
            }
            // At the end, the source does not request planes.
            claim()
            outcome = result
            ready.signal()
        }
    }
}

extension FramePlanes {
    /// Copies the 2×2 blocks that a rectangle touches from planes of the same even size and the same chroma.
    func copy(_ area: Rectangle, from other: FramePlanes, width: Int, height: Int) {
        let left = max(0, area.x & ~1)
        let top = max(0, area.y & ~1)
        let columns = min(width, (area.maxX + 1) & ~1) - left
        let bottom = min(height, (area.maxY + 1) & ~1)
        guard columns > 0, bottom > top else { return }
        for y in top..<bottom {
            (luma + y * lumaStride + left).update(from: other.luma + y * other.lumaStride + left, count: columns)
        }
        if let alpha, let from = other.alpha {
            for y in top..<bottom {
                (alpha.samples + y * alpha.stride + left).update(from: from.samples + y * from.stride + left, count: columns)
            }
        }
        let (first, count) = (left >> chroma.shift, columns >> chroma.shift)
        for y in top >> chroma.shift..<bottom >> chroma.shift {
            (cb + y * cbStride + first).update(from: other.cb + y * other.cbStride + first, count: count)
            (cr + y * crStride + first).update(from: other.cr + y * other.crStride + first, count: count)
        }
    }
}
