// Random loss on a receiving device, by the decisions that the native engine draws too.
#pragma once

#include <ns3/callback.h>
#include <ns3/error-model.h>
#include <ns3/packet.h>

#include "sim/net/loss.hpp"

namespace quicgym::ns3_host {

class LossErrorModel : public ns3::ErrorModel {
public:
    using LossCallback = ns3::Callback<void, ns3::Ptr<const ns3::Packet>>;

    // `on_loss` is told of every packet that is lost; may be null.
    LossErrorModel(const LossModel& model, Random random, LossCallback on_loss)
        : process_(model, random), on_loss_(on_loss) {}

private:
    bool DoCorrupt(ns3::Ptr<ns3::Packet> packet) override {
        if (!process_.lose_next()) return false;
        if (!on_loss_.IsNull()) on_loss_(packet);
        return true;
    }
    void DoReset() override {}

    net::LossProcess process_;
    LossCallback on_loss_;
};

}  // namespace quicgym::ns3_host
