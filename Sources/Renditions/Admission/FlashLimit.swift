/// The treatment of an animation that flashes more often than ``Flashes/allowed`` (WCAG 2.2, success criterion 2.3.1).
package enum FlashLimit: String, Sendable, CaseIterable {
    /// Animations are not examined.
    case off
    /// The animation is converted, logged and counted.
    case warn
    /// The animation is refused: ``RenditionError/flashing(general:red:)``. Its stills are not.
    case refuse
    /// A still picture is sent in its place.
    case still

    /// Whether nothing that moves may be sent before the animation has been examined.
    var withholds: Bool { self == .refuse || self == .still }
}
