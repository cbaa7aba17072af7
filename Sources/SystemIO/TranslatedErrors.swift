/// Returns the value of an expression, whose error another one replaces:
///
/// ```
/// let size = try translating(try file.size()) { (error: SystemError) in SettingsError("\(path): \(error)") }
/// let found = try await translating(awaiting: try await cache.list(of: url), to: RenditionError.init)
/// ```
package func translating<Value, Failure: Error, Other: Error>(
    _ value: @autoclosure () throws(Failure) -> Value, to other: (Failure) -> Other
) throws(Other) -> Value {
    do throws(Failure) {
        return try value()
    } catch {
        throw other(error)
    }
}

/// The same for an expression that suspends.
package func translating<Value, Failure: Error, Other: Error>(
    awaiting value: @autoclosure () async throws(Failure) -> Value, to other: (Failure) -> Other
) async throws(Other) -> Value {
    do throws(Failure) {
        return try await value()
    } catch {
        throw other(error)
    }
}
