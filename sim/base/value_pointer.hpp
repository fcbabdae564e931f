// A pointer that is copied together with what it points to.
#pragma once

#include <memory>
#include <utility>

namespace quicgym {

// A unique_ptr whose copy owns a copy of the object: by its clone(), where it has one, or by its copy
// constructor. C++26 has such types as std::polymorphic and std::indirect.
template <class T>
class ValuePointer : public std::unique_ptr<T> {
public:
    ValuePointer() = default;
    template <class U>
    ValuePointer(std::unique_ptr<U> pointer) : std::unique_ptr<T>(std::move(pointer)) {}
    ValuePointer(const ValuePointer& other) : std::unique_ptr<T>(copy_of(other.get())) {}
    ValuePointer& operator=(const ValuePointer&) = delete;
    ValuePointer(ValuePointer&&) noexcept = default;
    ValuePointer& operator=(ValuePointer&&) noexcept = default;
    ~ValuePointer() = default;

private:
    // clone() may return a base class of T.
    static T* copy_of(const T* object) {
        if (object == nullptr) return nullptr;
        if constexpr (requires { object->clone(); }) {
            return static_cast<T*>(object->clone().release());
        } else {
            return new T(*object);
        }
    }
};

}  // namespace quicgym
