// A pointer that is copied together with what it points to.
#pragma once

#include <memory>
#include <utility>

namespace quicgym {

// A smart pointer whose copy owns a copy of the object: by its clone(), where it has one, or by its copy
// constructor. C++26 has such types as std::polymorphic and std::indirect.
template <class T, class Pointer = std::unique_ptr<T>>
class ValuePointer : public Pointer {
public:
    ValuePointer() = default;
    template <class U>
    ValuePointer(std::unique_ptr<U> owned) : Pointer(std::move(owned)) {}
    ValuePointer(const ValuePointer& other) : Pointer(copy_of(other.get())) {}
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

template <class T>
using SharedValuePointer = ValuePointer<T, std::shared_ptr<T>>;

}  // namespace quicgym
