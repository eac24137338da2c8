#!/usr/bin/env python3
"""Stands in for the providers hashicorp/aws and hashicorp/tls where their registry is out of reach.

It takes what deploy/terraform/aws says of its resources and calls EC2 with it, at AWS_ENDPOINT_URL. Its schemas are those attributes and
no others, written from the providers' documentation: what the real providers would refuse, it may take. Terraform runs a copy of it under
a provider's name. `provider.py left REGION` prints as JSON what there is in a region, machines that ended aside.
"""

import base64
import json
import os
import sys

import boto3
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tf.blocks import SetNestedBlock
from tf.iface import DataSource, Provider, Resource
from tf.runner import run_provider
from tf.schema import Attribute, Block, Schema
from tf.types import Bool, List, Map, Number, String

REGION = "us-east-1"
TAGS = {}


def ec2():
    return boto3.client("ec2", region_name=REGION)


def attributes(required="", optional="", computed="", types=None):
    """Attributes by name: strings unless `types` says otherwise. All but the computed are of the resource's creation."""
    kinds = {"required": required, "optional": optional, "computed": computed}
    return [
        Attribute(name, (types or {}).get(name, String()), requires_replace=kind != "computed", **{kind: True})
        for kind, names in kinds.items()
        for name in names.split()
    ]


def block(name, *args, **kwargs):
    return SetNestedBlock(name, Block(attributes=attributes(*args, **kwargs)))


def only(values):
    """The one of a block, or of an answer."""
    [value] = values
    return value


def tags(kind, own=None):
    pairs = [{"Key": key, "Value": value} for key, value in {**TAGS, **(own or {})}.items()]
    return [{"ResourceType": kind, "Tags": pairs}]


def given(**arguments):
    """Those arguments that have a value."""
    return {name: value for name, value in arguments.items() if value is not None}


def permissions(blocks):
    for rule in blocks:
        ports = {} if rule["protocol"] == "-1" else {"FromPort": rule["from_port"], "ToPort": rule["to_port"]}
        ranges = [{"CidrIp": cidr} for cidr in rule["cidr_blocks"] or []]
        yield rule, {"IpProtocol": rule["protocol"], "IpRanges": ranges, **ports}


class Made(Resource):
    """A resource of EC2. Nothing of one is changed: what differs is made anew."""

    name, schema = "", []

    def __init__(self, provider):
        pass

    @classmethod
    def get_name(cls):
        return cls.name

    @classmethod
    def get_schema(cls):
        of = lambda kind: [part for part in cls.schema if isinstance(part, kind)]
        return Schema(version=0, attributes=of(Attribute), block_types=of(SetNestedBlock))

    def create(self, ctx, planned):
        return {**planned, **self.make(planned)}

    def read(self, ctx, current):
        return current

    def update(self, ctx, current, planned):
        raise NotImplementedError(f"{self.name} is made anew where it differs")

    def delete(self, ctx, current):
        self.remove(current)


class Vpc(Made):
    name = "vpc"
    schema = attributes(
        "cidr_block", "enable_dns_support enable_dns_hostnames", "id",
        types={"enable_dns_support": Bool(), "enable_dns_hostnames": Bool()},
    )

    def make(self, planned):
        vpc = ec2().create_vpc(CidrBlock=planned["cidr_block"], TagSpecifications=tags("vpc"))["Vpc"]["VpcId"]
        ec2().modify_vpc_attribute(VpcId=vpc, EnableDnsSupport={"Value": planned["enable_dns_support"]})
        ec2().modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": planned["enable_dns_hostnames"]})
        return {"id": vpc}

    def remove(self, current):
        ec2().delete_vpc(VpcId=current["id"])


class Subnet(Made):
    name = "subnet"
    schema = attributes("vpc_id cidr_block availability_zone", computed="id")

    def make(self, planned):
        made = ec2().create_subnet(
            VpcId=planned["vpc_id"], CidrBlock=planned["cidr_block"], AvailabilityZone=planned["availability_zone"],
            TagSpecifications=tags("subnet"),
        )
        return {"id": made["Subnet"]["SubnetId"]}

    def remove(self, current):
        ec2().delete_subnet(SubnetId=current["id"])


class InternetGateway(Made):
    name = "internet_gateway"
    schema = attributes("vpc_id", computed="id")

    def make(self, planned):
        gateway = ec2().create_internet_gateway(TagSpecifications=tags("internet-gateway"))
        gateway = gateway["InternetGateway"]["InternetGatewayId"]
        ec2().attach_internet_gateway(InternetGatewayId=gateway, VpcId=planned["vpc_id"])
        return {"id": gateway}

    def remove(self, current):
        ec2().detach_internet_gateway(InternetGatewayId=current["id"], VpcId=current["vpc_id"])
        ec2().delete_internet_gateway(InternetGatewayId=current["id"])


class RouteTable(Made):
    name = "route_table"
    schema = [*attributes("vpc_id", computed="id"), block("route", "cidr_block gateway_id")]

    def make(self, planned):
        table = ec2().create_route_table(VpcId=planned["vpc_id"], TagSpecifications=tags("route-table"))
        table = table["RouteTable"]["RouteTableId"]
        for route in planned["route"]:
            ec2().create_route(
                RouteTableId=table, DestinationCidrBlock=route["cidr_block"], GatewayId=route["gateway_id"]
            )
        return {"id": table}

    def remove(self, current):
        ec2().delete_route_table(RouteTableId=current["id"])


class RouteTableAssociation(Made):
    name = "route_table_association"
    schema = attributes("subnet_id route_table_id", computed="id")

    def make(self, planned):
        made = ec2().associate_route_table(RouteTableId=planned["route_table_id"], SubnetId=planned["subnet_id"])
        return {"id": made["AssociationId"]}

    def remove(self, current):
        ec2().disassociate_route_table(AssociationId=current["id"])


class SecurityGroup(Made):
    name = "security_group"
    RULE = ("protocol from_port to_port", "description cidr_blocks self")
    TYPES = {"from_port": Number(), "to_port": Number(), "cidr_blocks": List(String()), "self": Bool()}
    schema = [
        *attributes("vpc_id", "name_prefix", "id"),
        block("ingress", *RULE, types=TYPES),
        block("egress", *RULE, types=TYPES),
    ]

    def make(self, planned):
        name = planned["name_prefix"] + os.urandom(4).hex()
        group = ec2().create_security_group(
            GroupName=name, Description="Managed by Terraform", VpcId=planned["vpc_id"],
            TagSpecifications=tags("security-group"),
        )["GroupId"]
        # A new group lets everything out; the provider first takes that away.
        everything = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
        ec2().revoke_security_group_egress(GroupId=group, IpPermissions=[everything])
        for rule, permission in permissions(planned["ingress"]):
            if rule["self"]:
                permission["UserIdGroupPairs"] = [{"GroupId": group}]
            ec2().authorize_security_group_ingress(GroupId=group, IpPermissions=[permission])
        for _, permission in permissions(planned["egress"]):
            ec2().authorize_security_group_egress(GroupId=group, IpPermissions=[permission])
        return {"id": group}

    def remove(self, current):
        ec2().delete_security_group(GroupId=current["id"])


class PlacementGroup(Made):
    """A name alone: moto has no placement groups."""

    name = "placement_group"
    schema = attributes("name strategy", computed="id")

    def make(self, planned):
        return {"id": planned["name"]}

    def remove(self, current):
        pass


class KeyPair(Made):
    name = "key_pair"
    schema = attributes("public_key", "key_name_prefix", "id key_name")

    def make(self, planned):
        name = planned["key_name_prefix"] + os.urandom(4).hex()
        ec2().import_key_pair(
            KeyName=name, PublicKeyMaterial=planned["public_key"].encode(), TagSpecifications=tags("key-pair")
        )
        return {"id": name, "key_name": name}

    def remove(self, current):
        ec2().delete_key_pair(KeyName=current["id"])


class Instance(Made):
    name = "instance"
    schema = [
        *attributes(
            "ami instance_type",
            "subnet_id vpc_security_group_ids placement_group key_name associate_public_ip_address user_data tags "
            "instance_initiated_shutdown_behavior",
            "id public_ip private_ip",
            types={
                "vpc_security_group_ids": List(String()), "associate_public_ip_address": Bool(), "tags": Map(String()),
            },
        ),
        block("metadata_options", optional="http_tokens"),
        block("root_block_device", optional="volume_type volume_size", types={"volume_size": Number()}),
    ]

    def make(self, planned):
        disk = only(planned["root_block_device"])
        network = {
            "DeviceIndex": 0, "SubnetId": planned["subnet_id"], "Groups": planned["vpc_security_group_ids"],
            "AssociatePublicIpAddress": planned["associate_public_ip_address"],
        }
        placement = planned["placement_group"] and {"GroupName": planned["placement_group"]}
        volume = {
            "VolumeType": disk["volume_type"], "VolumeSize": int(disk["volume_size"]),
            # The provider's default.
            "DeleteOnTermination": True,
        }
        made = only(ec2().run_instances(
            MinCount=1, MaxCount=1, ImageId=planned["ami"], InstanceType=planned["instance_type"],
            KeyName=planned["key_name"], UserData=planned["user_data"], NetworkInterfaces=[network],
            MetadataOptions={"HttpTokens": only(planned["metadata_options"])["http_tokens"]},
            BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": volume}],
            InstanceInitiatedShutdownBehavior=planned["instance_initiated_shutdown_behavior"],
            TagSpecifications=tags("instance", planned["tags"]), **given(Placement=placement),
        )["Instances"])
        made = only(only(ec2().describe_instances(InstanceIds=[made["InstanceId"]])["Reservations"])["Instances"])
        return {"id": made["InstanceId"], "public_ip": made["PublicIpAddress"], "private_ip": made["PrivateIpAddress"]}

    def remove(self, current):
        ec2().terminate_instances(InstanceIds=[current["id"]])


class PrivateKey(Made):
    name = "private_key"
    schema = attributes("algorithm", computed="id private_key_openssh public_key_openssh")

    def make(self, planned):
        if planned["algorithm"] != "ED25519":
            raise NotImplementedError(planned["algorithm"])
        key, forms = Ed25519PrivateKey.generate(), serialization
        private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.OpenSSH, forms.NoEncryption())
        public = key.public_key().public_bytes(forms.Encoding.OpenSSH, forms.PublicFormat.OpenSSH)
        return {"id": "key", "private_key_openssh": private.decode(), "public_key_openssh": public.decode() + "\n"}

    def remove(self, current):
        pass


class Looked(DataSource):
    """What is looked up before anything is made."""

    name, schema = "", []
    get_name, get_schema = classmethod(Made.get_name.__func__), classmethod(Made.get_schema.__func__)

    def __init__(self, provider):
        pass


class Ami(Looked):
    name = "ami"
    schema = [
        *attributes("", "most_recent owners", "id", types={"most_recent": Bool(), "owners": List(String())}),
        block("filter", "name values", types={"values": List(String())}),
    ]

    def read(self, ctx, config):
        filters = [{"Name": one["name"], "Values": one["values"]} for one in config["filter"]]
        found = ec2().describe_images(Owners=config["owners"], Filters=filters)["Images"]
        newest = sorted(found, key=lambda image: image["CreationDate"])[-1:]
        return {**config, "id": only(newest)["ImageId"]}


class AvailabilityZones(Looked):
    name = "availability_zones"
    schema = attributes("", "state", "id names", types={"names": List(String())})

    def read(self, ctx, config):
        state = [{"Name": "state", "Values": [config["state"]]}]
        zones = ec2().describe_availability_zones(Filters=state)["AvailabilityZones"]
        return {**config, "id": REGION, "names": sorted(zone["ZoneName"] for zone in zones)}


class StandIn(Provider):
    def __init__(self, name):
        self.name = name

    def get_model_prefix(self):
        return f"{self.name}_"

    def full_name(self):
        return f"registry.terraform.io/hashicorp/{self.name}"

    def get_provider_schema(self, diags):
        if self.name == "tls":
            return Schema()
        default_tags = block("default_tags", optional="tags", types={"tags": Map(String())})
        return Schema(attributes=attributes("", "region"), block_types=[default_tags])

    def validate_config(self, diags, config):
        pass

    def configure_provider(self, diags, config):
        global REGION
        REGION = config.get("region") or REGION
        for one in config.get("default_tags") or []:
            TAGS.update(one["tags"])

    def get_data_sources(self):
        return [Ami, AvailabilityZones] if self.name == "aws" else []

    def get_resources(self):
        if self.name == "tls":
            return [PrivateKey]
        return [Vpc, Subnet, InternetGateway, RouteTable, RouteTableAssociation, SecurityGroup, PlacementGroup, KeyPair, Instance]


def left(region):
    """Everything in a region that these files make, by kind."""
    client = boto3.client("ec2", region_name=region)
    machines = [one for all in client.describe_instances()["Reservations"] for one in all["Instances"]]

    def about(machine):
        attribute = lambda name: client.describe_instance_attribute(InstanceId=machine["InstanceId"], Attribute=name)
        volumes = [one["Ebs"]["VolumeId"] for one in machine["BlockDeviceMappings"]]
        return {
            "tags": {tag["Key"]: tag["Value"] for tag in machine["Tags"]},
            "type": machine["InstanceType"],
            "public": machine["PublicIpAddress"],
            "private": machine["PrivateIpAddress"],
            "image": machine["ImageId"],
            "key": machine["KeyName"],
            "disks": [one["Size"] for one in client.describe_volumes(VolumeIds=volumes)["Volumes"]],
            "user_data": base64.b64decode(attribute("userData")["UserData"]["Value"]).decode(),
            "at_shutdown": attribute("instanceInitiatedShutdownBehavior")["InstanceInitiatedShutdownBehavior"]["Value"],
        }

    return {
        "machines": [about(machine) for machine in machines if machine["State"]["Name"] != "terminated"],
        "vpcs": [one["VpcId"] for one in client.describe_vpcs()["Vpcs"] if not one["IsDefault"]],
        "gateways": [one["InternetGatewayId"] for one in client.describe_internet_gateways()["InternetGateways"]],
        "groups": [one for one in client.describe_security_groups()["SecurityGroups"] if one["GroupName"] != "default"],
        "keys": [one["KeyName"] for one in client.describe_key_pairs()["KeyPairs"]],
        "volumes": [one["VolumeId"] for one in client.describe_volumes()["Volumes"]],
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["left"]:
        print(json.dumps(left(sys.argv[2])))
    else:
        # terraform-provider-aws_v5.0.0
        run_provider(StandIn(os.path.basename(sys.argv[0]).split("-")[2].split("_")[0]), sys.argv)
