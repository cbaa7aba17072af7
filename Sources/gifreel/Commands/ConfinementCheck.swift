internal import Sandbox
internal import Settings

/// Checks how far the kernel confines the workers.
enum ConfinementCheck {
    /// Checks the confinement of the zygote.
    ///
    /// - Parameters:
    ///   - confinement: Nil if the zygote did not start.
    ///   - isRequired: `sandbox.require`.
    /// - Returns: A warning for the log if the kernel lacks something, or nil.
    /// - Throws: ``SettingsError`` if the server must not start.
    static func check(_ confinement: Confinement?, isRequired: Bool) throws(SettingsError) -> String? {
        guard let confinement else { throw SettingsError("The worker process does not start; see the log lines above.") }
        if confinement.missing.isEmpty { return nil }
        let names = confinement.missing.joined(separator: " and ")
        if isRequired { throw SettingsError("sandbox.require is true, but this kernel does not offer \(names).") }
        return
            "THE SANDBOX IS WEAK: this kernel does not offer \(names), so a GIF that takes over a worker can do more than it should"
    }
}
