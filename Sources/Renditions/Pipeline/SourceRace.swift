internal import Fetch

/// A race between a flight that produces a rendition and the first bytes of its source.
struct SourceRace: Sendable {
    let arriving: ArrivingSource
    let source: SourceURL
    let rules: OriginRules
    /// The memory of a client that follows the source.
    let buffer: AdmittedMemory

    private enum Event: Sendable {
        case ended(Result<RenditionResult, RenditionError>)
        case arrived(FollowedSource?)
    }

    /// Waits for `flight` and for the source, and returns what comes first. If the flight fails first, what has arrived of the
    /// source is returned, and its error only if nothing has.
    func run(
        _ flight: @escaping @Sendable () async throws(RenditionError) -> RenditionResult
    ) async -> Result<FollowedResult, RenditionError> {
        await withTaskGroup(of: Event.self) { group in
            group.addTask {
                do throws(RenditionError) {
                    return .ended(.success(try await flight()))
                } catch {
                    return .ended(.failure(error))
                }
            }
            group.addTask {
                _ = await arriving.awaitStart()
                return .arrived(followed)
            }
            defer { group.cancelAll() }
            for await event in group {
                switch event {
                case .arrived(let source?): return .success(.source(source))
                // The flight's error says why nothing arrives.
                case .arrived(nil): continue
                case .ended(.success(let result)): return .success(.rendition(result))
                case .ended(.failure(let error)): return followed.map { .success(.source($0)) } ?? .failure(error)
                }
            }
            return .failure(.cancelled)
        }
    }

    private var followed: FollowedSource? { FollowedSource(arriving, of: source, rules, buffer) }
}
